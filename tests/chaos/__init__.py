"""Random faults on a real cluster, the whole history of what happened, and a checker of that history."""
