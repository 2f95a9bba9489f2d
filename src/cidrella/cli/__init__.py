"""What a person types: parses, then one call into `app`, then shows what came back."""
