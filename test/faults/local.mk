# What test/faults adds to the build: the worker, a plain libfabric program that test/faults/run starts. Not part of
# `make check` itself: it takes minutes.
check_PROGRAMS += test/faults/worker
test_faults_worker_SOURCES = \
	test/faults/worker.c test/faults/worker.h test/faults/worker_deny.c test/faults/worker_fabric.c \
	test/faults/worker_access.c test/faults/worker_traffic.c
test_faults_worker_LDADD = $(LIBFABRIC_LIBS)
EXTRA_DIST += test/faults/run test/faults/job.py test/faults/scenarios.py
