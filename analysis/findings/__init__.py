"""What a reader must know before trusting the numbers."""
