"""The accounting of Torque and OpenPBS (PBS Pro): its readers."""
