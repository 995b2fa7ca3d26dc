"""HTTP requests to one service, and JSON to and from dataclasses."""
