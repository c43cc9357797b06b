"""A server of the Model Context Protocol; imported only by the command that starts it."""
