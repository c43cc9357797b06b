"""Events and the file that keeps them."""
