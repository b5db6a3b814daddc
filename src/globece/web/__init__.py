"""The live page: a server on this machine alone, for one window that knows its token."""
