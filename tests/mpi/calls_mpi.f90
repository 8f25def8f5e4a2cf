program calls
   use mpi
   implicit none
   integer :: request(2)
   include 'calls_body.inc'
end program
