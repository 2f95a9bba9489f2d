"""Service addresses: given from a bitmap that many processes share, and kept in step with the Services."""
