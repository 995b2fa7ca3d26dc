"""The rest of the service: status, events, backends and the policy's weights."""
