"""`steelyard run`: one command weighed on this machine."""
