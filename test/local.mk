# Unit tests mirror the tree: test/<folder>/test_<subject>.c, one program each, written with cmocka.
TEST_LDADD = libropewalk-core.la $(CMOCKA_LIBS)
FULL_SETS = test/full_sets.c test/full_sets.h

include test/base/local.mk
include test/topology/local.mk
include test/selection/local.mk
include test/engine/local.mk
include test/links/local.mk
include test/rc/local.mk
include test/wire/local.mk
include test/packet/local.mk
include test/memory/local.mk
include test/uc/local.mk
include test/ud/local.mk
include test/channel_adapter/local.mk
include test/connect/local.mk
include test/shared_rc/local.mk
include test/shm/local.mk
include test/libfabric/local.mk
include test/mpi/local.mk
include test/bench/local.mk
include test/faults/local.mk
include test/hosts/local.mk
include test/tools/local.mk
include test/examples/local.mk
include test/fuzz/local.mk

# Which folder may include what, rows that have their test, mutants that fit and how they are run.
TESTS += test/test_includes test/test_rows test/test_mutants test/test_mutants_run
EXTRA_DIST += test/test_includes test/test_rows test/test_mutants test/test_mutants_run test/rows.txt \
	test/include-table.txt
# What the packages are made by.
TESTS += test/test_recipes
EXTRA_DIST += test/test_recipes test/tsan.supp
# The whole folder: a mutant is added by adding its file.
EXTRA_DIST += test/mutants test/COVERAGE.md
# Included by tests of several folders.
EXTRA_DIST += test/own_port.h test/warnings.h
