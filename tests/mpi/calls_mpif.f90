program calls
   implicit none
   include 'mpif.h'
   integer :: request(2)
   include 'calls_body.inc'
end program
