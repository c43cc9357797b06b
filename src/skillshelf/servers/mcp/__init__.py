"""A shelf to a server that speaks the Model Context Protocol; imported only by the command that starts it."""
