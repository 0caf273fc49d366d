"""What is reached from outside over HTTP."""
