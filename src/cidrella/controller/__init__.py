"""The controller: read what the API holds, ask the core, write to the API."""
