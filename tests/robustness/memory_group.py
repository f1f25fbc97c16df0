"""A memory cgroup (v1 or v2) for one child process. Standard library only."""

import os
import time

# (where groups are created, the file of the limit, a file that must be readable there)
HIERARCHIES = (("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.limit_in_bytes"),
               ("/sys/fs/cgroup", "memory.max", "cgroup.subtree_control"))


class MemoryGroup:
    """Limits the memory of the processes that child_peak.run puts inside; `path` is None when no group can be created."""

    def __init__(self, limit, name="headroom-robustness"):
        self.path = None
        for root, limit_file, needed in HIERARCHIES:
            try:
                with open(f"{root}/{needed}", encoding="ascii") as text:
                    if needed == "cgroup.subtree_control" and "memory" not in text.read():
                        continue
                path = f"{root}/{name}-{os.getpid()}"
                os.makedirs(path, exist_ok=True)
                self.write(path, limit_file, limit)
                for swap in ("memory.swappiness", "memory.swap.max"):
                    if os.path.exists(f"{path}/{swap}"):
                        self.write(path, swap, 0)
                self.path = path
                return
            except OSError:
                continue

    @staticmethod
    def write(path, name, value):
        with open(f"{path}/{name}", "w", encoding="ascii") as file:
            file.write(str(value))

    def close(self):
        for _ in range(100):
            if not self.path:
                return
            try:
                os.rmdir(self.path)
                self.path = None
            except OSError:  # the last process is still exiting
                time.sleep(0.01)
