/* SPDX-License-Identifier: BSD-3-Clause */
/* Derived datatypes: data leaves from and arrives in scattered places, and what lies between stays untouched. */
#include "mpi_test.h"

enum { GAP = 0x5a };

struct item {
	char c;
	double d;
	int i[3];
	short s;
};

static MPI_Datatype of_struct(void)
{
	int n[] = {1, 1, 3, 1};
	MPI_Aint at[] = {
		offsetof(struct item, c), offsetof(struct item, d), offsetof(struct item, i), offsetof(struct item, s)};
	MPI_Datatype types[] = {MPI_CHAR, MPI_DOUBLE, MPI_INT, MPI_SHORT}, t, resized;

	MPI_Type_create_struct(4, n, at, types, &t);
	MPI_Type_create_resized(t, 0, sizeof(struct item), &resized);
	MPI_Type_free(&t);
	return resized;
}

/* A type of each kind; `scale` makes it larger. */
static MPI_Datatype make(int kind, int scale)
{
	int lens[] = {3, 1, 5}, at[] = {20, 0, 7}, sizes[] = {12, 10 * scale, 9}, part[] = {5, 4 * scale, 3},
	    start[] = {2, 1, 4};
	MPI_Aint bytes[] = {160, 8, 64};
	MPI_Datatype t, inner;

	switch (kind) {
	case 0:
		MPI_Type_contiguous(10 * scale, MPI_INT, &t);
		break;
	case 1:
		MPI_Type_vector(8 * scale, 2, 5, MPI_INT, &t);
		break;
	case 2:
		MPI_Type_indexed(3, lens, at, MPI_DOUBLE, &inner);
		MPI_Type_contiguous(scale, inner, &t);
		MPI_Type_free(&inner);
		break;
	case 3:
		MPI_Type_create_hindexed(3, lens, bytes, MPI_DOUBLE, &inner);
		MPI_Type_create_hvector(scale, 1, 1000, inner, &t);
		MPI_Type_free(&inner);
		break;
	case 4:
		MPI_Type_create_subarray(3, sizes, part, start, MPI_ORDER_C, MPI_SHORT, &t);
		break;
	case 5:
		inner = of_struct();
		MPI_Type_vector(4 * scale, 1, 2, inner, &t);
		MPI_Type_free(&inner);
		break;
	default:
		inner = make(1, 2);
		MPI_Type_create_hvector(2 * scale, 1, 700, inner, &t);
		MPI_Type_free(&inner);
	}
	MPI_Type_commit(&t);
	return t;
}

/* Expects that unpacking `packed` into gaps gives exactly what is in `got`. */
static void expect_unpacked(
	const char *packed, int size, MPI_Datatype t, const char *got, size_t extent, int kind, int scale)
{
	char *expected = allocate(extent);
	int at = 0;

	memset(expected, GAP, extent);
	MPI_Unpack(packed, size, &at, expected, 1, t, MPI_COMM_WORLD);
	for (size_t i = 0; i < extent; i++)
		EXPECT(got[i] == expected[i], "type %d, scale %d: byte %zu is %02x, should be %02x", kind, scale, i,
			(unsigned char)got[i], (unsigned char)expected[i]);
	free(expected);
}

/* One type from rank to rank in three ways: as it is at both ends, scattered to packed, packed to scattered. */
static void one(int kind, int scale, int peer)
{
	MPI_Datatype t = make(kind, scale);
	MPI_Aint low, span;
	int size, at = 0;
	size_t extent;
	char *from, *to, *packed, *other;
	MPI_Request r;

	MPI_Type_get_true_extent(t, &low, &span);
	MPI_Type_size(t, &size);
	extent = (size_t)(low + span) + 64;
	from = allocate(extent);
	to = allocate(extent);
	packed = allocate((size_t)size);
	other = allocate((size_t)size);
	fill(from, extent, 5); /* the same at both ends, so that each knows what must arrive */
	MPI_Pack(from, 1, t, packed, size, &at, MPI_COMM_WORLD);
	EXPECT(at == size, "type %d packs to %d bytes, its size is %d", kind, at, size);

	memset(to, GAP, extent);
	MPI_Irecv(to, 1, t, peer, 1, MPI_COMM_WORLD, &r);
	MPI_Send(from, 1, t, peer, 1, MPI_COMM_WORLD);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	expect_unpacked(packed, size, t, to, extent, kind, scale);

	MPI_Irecv(other, size, MPI_BYTE, peer, 2, MPI_COMM_WORLD, &r);
	MPI_Ssend(from, 1, t, peer, 2, MPI_COMM_WORLD);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	EXPECT(!memcmp(other, packed, (size_t)size), "type %d, scale %d: sent scattered, received packed: wrong", kind,
		scale);

	memset(to, GAP, extent);
	MPI_Isend(packed, size, MPI_BYTE, peer, 3, MPI_COMM_WORLD, &r);
	MPI_Recv(to, 1, t, peer, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	expect_unpacked(packed, size, t, to, extent, kind, scale);

	MPI_Type_free(&t);
	free(from), free(to), free(packed), free(other);
}

static void datatypes(void)
{
	int peer = rank ^ 1;

	for (int kind = 0; kind < 7 && peer < ranks; kind++) {
		for (int scale = 1; scale <= 4096; scale *= 8)
			one(kind, scale, peer);
	}
}

const struct mpi_test datatype_tests[] = {
	{"datatypes", 2, MPI_THREAD_SINGLE, datatypes, "vectors, indexed, structs, subarrays, nested"},
	{0},
};
