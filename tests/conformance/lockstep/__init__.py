"""The same random requests to two servers, one after the other, and what they answer, compared."""
