program calls
   use mpi_f08
   implicit none
   type(MPI_Request) :: request(2)
   include 'calls_body.inc'
end program
