/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Preloaded into HPC Challenge's ranks (run_hpcc): mends a fault of its MPIRandomAccess, which else loses updates by any
 * transport where ranks wait for processors.
 *
 * A rank of it has four receives posted, each for any tag of anybody, and takes whichever MPI_Testany or MPI_Waitany
 * names: of several that are complete the first in the array, not the first that was posted. Each sender's last message
 * says FINISHED. When all have said so the rank leaves its loop and cancels what is still posted; but a message of
 * updates, received before a FINISHED into a later place of the array, may lie there, and is never looked at. Here
 * receives end in the order in which they were posted, which is that of each sender's messages.
 */
#include <mpi.h>

#define POSTED_MAX 16u /* as many as hpcc can have */

static MPI_Request *posted[POSTED_MAX]; /* hpcc's variables; a ring */
static unsigned first, next;

int MPI_Irecv(void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request *request)
{
	if (source == MPI_ANY_SOURCE && tag == MPI_ANY_TAG)
		posted[next++ % POSTED_MAX] = request;
	return PMPI_Irecv(buf, count, type, source, tag, comm, request);
}

/* The receive that is to end next, if these are the requests that it is one of. */
static MPI_Request *oldest(int count, const MPI_Request requests[])
{
	MPI_Request *r = posted[first % POSTED_MAX];

	return first != next && r >= requests && r < requests + count ? r : NULL;
}

int MPI_Testany(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status)
{
	MPI_Request *r = oldest(count, requests);
	int rc;

	if (!r)
		return PMPI_Testany(count, requests, index, flag, status);
	rc = PMPI_Test(r, flag, status);
	*index = *flag ? (int)(r - requests) : MPI_UNDEFINED;
	first += *flag != 0;
	return rc;
}

int MPI_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status)
{
	MPI_Request *r = oldest(count, requests);

	if (!r)
		return PMPI_Waitany(count, requests, index, status);
	*index = (int)(r - requests);
	first++;
	return PMPI_Wait(r, status);
}

int MPI_Cancel(MPI_Request *request)
{
	first = next; /* the rank has left its loop */
	return PMPI_Cancel(request);
}
