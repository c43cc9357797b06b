"""The JSON-RPC server."""
