"""What the API stores: objects in memory, a history of changes, and a journal that outlives the process."""
