"""Where the API server is and who we are to it, as kubectl would find out."""

from __future__ import annotations

from cidrella.kube.credentials import Access, Credentials

__all__ = ["Access", "Credentials"]
