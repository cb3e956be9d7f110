/* SPDX-License-Identifier: BSD-3-Clause */
/* The loops that more than one test runs. */
#include "bench/common/clock.h"
#include "bench/common/data.h"
#include "bench/mpi/team.h"

#include <mpi.h>

void bench_mpi_send(struct bench_run *r, int peer, unsigned long seq)
{
	bench_before_send(r, r->send, r->size, bench_seed(r->team->rank, peer, r->base + seq));
	MPI_Send(r->send, (int)r->size, MPI_BYTE, peer, BENCH_MPI_DATA, MPI_COMM_WORLD);
}

void bench_mpi_receive(struct bench_run *r, int peer, unsigned long seq)
{
	MPI_Recv(r->recv, (int)r->size, MPI_BYTE, peer, BENCH_MPI_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	bench_after_recv(r, r->recv, r->size, bench_seed(peer, r->team->rank, r->base + seq));
}

int bench_mpi_turns(struct bench_run *r, double *seconds, bench_mpi_half *send, bench_mpi_half *receive)
{
	int peer = bench_mpi_partner(r);
	double start = bench_now();

	for (unsigned long i = 0; i < r->iterations; i++) {
		(r->team->rank < peer ? send : receive)(r, peer, i);
		(r->team->rank < peer ? receive : send)(r, peer, i);
	}
	*seconds = bench_now() - start;
	return 0;
}

int bench_mpi_one_way(struct bench_run *r, double *seconds, bench_mpi_half *send, bench_mpi_half *receive)
{
	int peer = bench_mpi_partner(r);
	double start = bench_now();

	for (unsigned long i = 0; i < r->iterations; i++)
		(r->team->rank < peer ? send : receive)(r, peer, i);
	*seconds = bench_now() - start;
	return 0;
}

int bench_mpi_pingpong(struct bench_run *r, double *seconds)
{
	return bench_mpi_turns(r, seconds, bench_mpi_send, bench_mpi_receive);
}

static void send_window(struct bench_run *r, int peer, unsigned long iteration, MPI_Request *request)
{
	for (unsigned i = 0; i < r->window; i++) {
		char *data = r->send + bench_slot(r, i);

		bench_before_send(
			r, data, r->size, bench_seed(r->team->rank, peer, r->base + iteration * r->window + i));
		MPI_Isend(data, (int)r->size, MPI_BYTE, peer, BENCH_MPI_DATA, MPI_COMM_WORLD, &request[i]);
	}
	MPI_Waitall((int)r->window, request, MPI_STATUSES_IGNORE);
	MPI_Recv(NULL, 0, MPI_BYTE, peer, BENCH_MPI_ANSWER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void receive_window(struct bench_run *r, int peer, unsigned long iteration, MPI_Request *request)
{
	unsigned i;

	for (i = 0; i < r->window; i++)
		MPI_Irecv(r->recv + bench_slot(r, i), (int)r->size, MPI_BYTE, peer, BENCH_MPI_DATA, MPI_COMM_WORLD,
			&request[i]);
	MPI_Waitall((int)r->window, request, MPI_STATUSES_IGNORE);
	for (i = 0; i < r->window; i++)
		bench_after_recv(r, r->recv + bench_slot(r, i), r->size,
			bench_seed(peer, r->team->rank, r->base + iteration * r->window + i));
	MPI_Send(NULL, 0, MPI_BYTE, peer, BENCH_MPI_ANSWER, MPI_COMM_WORLD);
}

int bench_mpi_stream(struct bench_run *r, double *seconds)
{
	MPI_Request request[r->window];
	int peer = bench_mpi_partner(r);
	double start = bench_now();

	for (unsigned long i = 0; i < r->iterations; i++) {
		if (r->team->rank < peer)
			send_window(r, peer, i, request);
		else
			receive_window(r, peer, i, request);
	}
	*seconds = bench_now() - start;
	return 0;
}
