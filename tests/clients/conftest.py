"""Real clients talk through a real proxy; see tests/proxy for the proxy by itself."""

from tests.proxy.conftest import pair

__all__ = ["pair"]
