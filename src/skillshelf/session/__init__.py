"""One conversation: tools, policy, permissions, recording, replay."""
