#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""mpi4py: pickled objects and plain buffers between all ranks, by messages and by collectives, each checked."""
from array import array

from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()


def expect(condition, what):
    if not condition:
        print(f"FAIL rank {rank} of {size}: {what}", flush=True)
        comm.Abort(1)


def thing(source, number):
    """An object that pickles to a few bytes or to several hundred thousand, by its number."""
    return {"from": source, "list": list(range(number * 1000)), "text": "hemp" * number,
            "nested": [(source, {number: None})]}


left, right = (rank - 1) % size, (rank + 1) % size
for number in (0, 1, 10, 100):
    got = comm.sendrecv(thing(rank, number), dest=right, source=left, sendtag=number, recvtag=number)
    expect(got == thing(left, number), f"object {number} from {left}")

requests = [comm.isend(thing(rank, n), dest=right, tag=n) for n in range(20)]
for n in reversed(range(20)):
    status = MPI.Status()
    message = comm.mprobe(source=left, tag=n, status=status)
    expect(status.Get_tag() == n, f"probed tag {status.Get_tag()}, should be {n}")
    expect(message.recv() == thing(left, n), f"object {n}, received in reverse")
MPI.Request.waitall(requests)

for root in range(size):
    expect(comm.bcast(thing(root, 50) if rank == root else None, root=root) == thing(root, 50), f"bcast from {root}")
    everything = comm.gather(thing(rank, root), root=root)
    expect(rank != root or everything == [thing(r, root) for r in range(size)], f"gather at {root}")
expect(comm.alltoall([thing(rank, to) for to in range(size)]) == [thing(r, rank) for r in range(size)], "alltoall")
expect(comm.allreduce(rank) == size * (size - 1) // 2, "allreduce")

for count in (0, 1, 1000, 300000):
    out, into = array("d", [rank + i for i in range(count)]), array("d", bytes(8 * count))
    comm.Sendrecv(out, dest=right, source=left, recvbuf=into)
    expect(into == array("d", [left + i for i in range(count)]), f"buffer of {count} doubles")
    total = array("d", bytes(8 * count))
    comm.Allreduce(out, total)
    sums = array("d", [size * i + size * (size - 1) // 2 for i in range(count)])
    expect(total == sums, f"Allreduce of {count} doubles")

comm.Barrier()
if rank == 0:
    print(f"ok mpi4py {MPI.Get_library_version().split(',')[0]}, {size} ranks")
