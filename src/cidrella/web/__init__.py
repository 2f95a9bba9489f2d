"""What answers HTTP beside the controller."""
