"""The pages that show a catalog to people: in a browser on this machine, on a server, and as static files."""
