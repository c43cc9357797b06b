"""From a query to ranked skills."""
