"""The lab's `process` driver: nodes that are processes of this user, behind SSH servers of ours on 127.0.0.1."""
