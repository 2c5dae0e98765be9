"""What the code generators of BM168x chips share: two queues of commands, one container."""
