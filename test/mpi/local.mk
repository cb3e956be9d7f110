# What test/mpi adds to the build: one program with all MPI tests, which test/mpi/run starts under mpirun. Not part of
# `make check` itself: it takes minutes. No sanitizer in it: it is a host program, the provider is what is tested.
if HAVE_MPI
check_PROGRAMS += test/mpi/mpi_tests
test_mpi_mpi_tests_SOURCES = \
	test/mpi/main.c test/mpi/mpi_test.h \
	test/mpi/sizes.c test/mpi/matching.c test/mpi/requests.c test/mpi/flood.c test/mpi/communicators.c \
	test/mpi/collectives.c test/mpi/datatypes.c test/mpi/threads.c test/mpi/soak.c test/mpi/one_sided.c
test_mpi_mpi_tests_CFLAGS = $(RWK_WARNINGS) $(MPI_CFLAGS)
test_mpi_mpi_tests_LDFLAGS =
test_mpi_mpi_tests_LDADD = $(MPI_LIBS) -lpthread

# Preloaded into hpcc; the -rpath makes libtool build a module.
check_LTLIBRARIES += test/mpi/hpcc_in_order.la
test_mpi_hpcc_in_order_la_SOURCES = test/mpi/hpcc_in_order.c
test_mpi_hpcc_in_order_la_CFLAGS = $(RWK_WARNINGS) $(MPI_CFLAGS)
test_mpi_hpcc_in_order_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
test_mpi_hpcc_in_order_la_LIBADD = $(MPI_LIBS)
endif
dist_check_SCRIPTS += test/mpi/tune_file
TESTS += test/mpi/tune_file

EXTRA_DIST += test/mpi/run test/mpi/run_hpcc test/mpi/run_netpipe test/mpi/objects.py
