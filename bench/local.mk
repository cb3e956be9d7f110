# What bench adds to the build. Nothing here is installed. The benchmarks share no code with what they measure.
bench_common = bench/common/cpu.c bench/common/data.c bench/common/options.c bench/common/report.c \
	bench/common/stats.c bench/common/sweep.c bench/common/ticks.c
bench_headers = bench/common/bench.h bench/common/clock.h bench/common/cpu.h bench/common/data.h \
	bench/common/options.h bench/common/report.h bench/common/stats.h bench/common/sweep.h \
	bench/common/ticks.h

noinst_LTLIBRARIES += bench/libbench.la
bench_libbench_la_SOURCES = $(bench_common) $(bench_headers)
bench_libbench_la_LIBADD = -lm

# The programs on bare libfabric.
noinst_LTLIBRARIES += bench/libpair.la
bench_libpair_la_SOURCES = bench/ofi/endpoint.c bench/ofi/loops.c bench/ofi/one_sided.c bench/ofi/one_sided.h \
	bench/ofi/pair.c bench/ofi/pair.h
bench_libpair_la_CPPFLAGS = $(AM_CPPFLAGS) $(LIBFABRIC_CFLAGS)
bench_libpair_la_LIBADD = bench/libbench.la $(LIBFABRIC_LIBS)
noinst_PROGRAMS += bench/ofi/latency bench/ofi/bandwidth bench/ofi/rate
bench_ofi_latency_CPPFLAGS = $(bench_libpair_la_CPPFLAGS)
bench_ofi_latency_LDADD = bench/libpair.la
bench_ofi_bandwidth_CPPFLAGS = $(bench_libpair_la_CPPFLAGS)
bench_ofi_bandwidth_LDADD = bench/libpair.la
bench_ofi_rate_CPPFLAGS = $(bench_libpair_la_CPPFLAGS)
bench_ofi_rate_LDADD = bench/libpair.la
noinst_PROGRAMS += bench/ofi/write_latency bench/ofi/read_latency bench/ofi/write_bandwidth \
	bench/ofi/read_bandwidth bench/ofi/fetch_add_latency bench/ofi/compare_swap_latency
bench_ofi_write_latency_CPPFLAGS = $(bench_libpair_la_CPPFLAGS)
bench_ofi_write_latency_LDADD = bench/libpair.la
bench_ofi_read_latency_CPPFLAGS = $(bench_libpair_la_CPPFLAGS)
bench_ofi_read_latency_LDADD = bench/libpair.la
bench_ofi_write_bandwidth_CPPFLAGS = $(bench_libpair_la_CPPFLAGS)
bench_ofi_write_bandwidth_LDADD = bench/libpair.la
bench_ofi_read_bandwidth_CPPFLAGS = $(bench_libpair_la_CPPFLAGS)
bench_ofi_read_bandwidth_LDADD = bench/libpair.la
bench_ofi_fetch_add_latency_CPPFLAGS = $(bench_libpair_la_CPPFLAGS)
bench_ofi_fetch_add_latency_LDADD = bench/libpair.la
bench_ofi_compare_swap_latency_CPPFLAGS = $(bench_libpair_la_CPPFLAGS)
bench_ofi_compare_swap_latency_LDADD = bench/libpair.la

# Threads that send at once.
noinst_PROGRAMS += bench/ofi/threads
bench_ofi_threads_SOURCES = bench/ofi/threads.c
bench_ofi_threads_CPPFLAGS = $(bench_libpair_la_CPPFLAGS)
bench_ofi_threads_LDADD = bench/libbench.la $(LIBFABRIC_LIBS) -lpthread

# A great many addresses.
noinst_PROGRAMS += bench/ofi/addresses
bench_ofi_addresses_SOURCES = bench/ofi/addresses.c
bench_ofi_addresses_CPPFLAGS = $(bench_libpair_la_CPPFLAGS)
bench_ofi_addresses_LDADD = bench/libbench.la $(LIBFABRIC_LIBS)

# The programs on ropewalk.h: linked with what is installed, as any other.
noinst_LTLIBRARIES += bench/libadapter.la
bench_libadapter_la_SOURCES = bench/adapter/adapter.h bench/adapter/ends.c bench/adapter/main.c \
	bench/adapter/options.c bench/adapter/pingpong.c bench/adapter/stream.c bench/adapter/work.c
bench_libadapter_la_LIBADD = bench/libbench.la librwk_meet.la libropewalk.la
noinst_PROGRAMS += bench/adapter/latency bench/adapter/bandwidth bench/adapter/rate
bench_adapter_latency_LDADD = bench/libadapter.la
bench_adapter_bandwidth_LDADD = bench/libadapter.la
bench_adapter_rate_LDADD = bench/libadapter.la

# The limits of the machine.
noinst_PROGRAMS += bench/limits
bench_limits_SOURCES = bench/machine/copy.c bench/machine/cross.c bench/machine/limits.c bench/machine/line.c \
	bench/machine/mate.c bench/machine/mate.h bench/machine/udp.c
bench_limits_LDADD = bench/libbench.la

# Parts of the engine by themselves.
noinst_PROGRAMS += bench/match
bench_match_SOURCES = bench/match.c
bench_match_LDADD = bench/libbench.la libropewalk-core.la

# The bare channel between two processes.
noinst_PROGRAMS += bench/shm_channel
bench_shm_channel_SOURCES = bench/shm_channel.c
bench_shm_channel_LDADD = bench/libbench.la libropewalk-core.la -lm

# A provider that does nothing, for own_cost. An -rpath, though it goes nowhere, is what makes libtool build a module.
noinst_LTLIBRARIES += bench/null_provider/librwk_null-fi.la
bench_null_provider_librwk_null_fi_la_SOURCES = bench/null_provider/endpoint.c bench/null_provider/info.c \
	bench/null_provider/null.h bench/null_provider/objects.c
bench_null_provider_librwk_null_fi_la_CPPFLAGS = $(AM_CPPFLAGS) $(LIBFABRIC_CFLAGS)
bench_null_provider_librwk_null_fi_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -rpath /nowhere
bench_null_provider_librwk_null_fi_la_LIBADD = $(LIBFABRIC_LIBS)

# The large transfers inside a node, without anything around them.
noinst_PROGRAMS += bench/shm_transfer
bench_shm_transfer_SOURCES = bench/shm_transfer.c test/shm/transfer_pair.c test/shm/transfer_pair.h
bench_shm_transfer_LDADD = bench/libbench.la libropewalk-core.la

# RC against SRC in large jobs, on the simulated network.
scale_job = bench/scale_job.c bench/scale_job.h bench/scale_rank.c bench/scale_internal.h
noinst_PROGRAMS += bench/scale
bench_scale_SOURCES = bench/scale.c $(scale_job)
bench_scale_LDADD = bench/libbench.la librwk_sim.la libropewalk-core.la -lm

# From nothing to the first message.
noinst_PROGRAMS += bench/startup/startup
bench_startup_startup_SOURCES = bench/startup/main.c bench/startup/ofi.c bench/startup/startup.h
bench_startup_startup_CPPFLAGS = $(bench_libpair_la_CPPFLAGS)
bench_startup_startup_LDADD = bench/libbench.la $(LIBFABRIC_LIBS)
if HAVE_UCX
bench_startup_startup_SOURCES += bench/startup/ucx.c
bench_startup_startup_CPPFLAGS += -DHAVE_UCX $(UCX_CFLAGS)
bench_startup_startup_LDADD += $(UCX_LIBS)
else
EXTRA_DIST += bench/startup/ucx.c
endif

# The MPI programs. They are compiled by $(MPICC) into $(BENCH_MPI_DIR); for another MPI library:
#   make bench-mpi MPICC=mpicc.mpich BENCH_MPI_DIR=bench/mpich
BENCH_MPI_DIR = bench/openmpi
bench_mpi_names = latency multi_latency request_latency exchange_latency headed_latency probe_latency test_time \
	bandwidth bidirectional multi_rate blocking_rate unexpected_rate pipeline_time allreduce alltoall bcast own_cost \
	put_latency get_latency put_bandwidth get_bandwidth put_rate accumulate_latency fetch_and_op_latency \
	compare_and_swap_latency footprint progress
bench_mpi_shared = bench/mpi/loops.c bench/mpi/one_sided.c bench/mpi/team.c
bench_mpi_headers = bench/mpi/one_sided.h bench/mpi/team.h
bench_mpi_programs = $(bench_mpi_names:%=$(BENCH_MPI_DIR)/%)
bench_mpi_objects = $(bench_common:bench/common/%.c=$(BENCH_MPI_DIR)/common/%.o) \
	$(bench_mpi_shared:bench/mpi/%.c=$(BENCH_MPI_DIR)/shared/%.o)
bench_mpi_compile = $(MPICC) -I$(srcdir) $(RWK_CPPFLAGS) $(CPPFLAGS) $(RWK_CFLAGS) $(CFLAGS) $(BENCH_MPI_CFLAGS)

$(BENCH_MPI_DIR)/common/%.o: bench/common/%.c $(bench_headers)
	$(AM_V_CC)$(MKDIR_P) $(@D) && $(bench_mpi_compile) -c -o $@ $<

$(BENCH_MPI_DIR)/shared/%.o: bench/mpi/%.c $(bench_mpi_headers) $(bench_headers)
	$(AM_V_CC)$(MKDIR_P) $(@D) && $(bench_mpi_compile) -c -o $@ $<

$(bench_mpi_programs): $(BENCH_MPI_DIR)/%: bench/mpi/%.c $(bench_mpi_objects)
	$(AM_V_CCLD)$(bench_mpi_compile) $(RWK_LDFLAGS) $(LDFLAGS) -o $@ $< $(bench_mpi_objects) -lm

bench-mpi: $(bench_mpi_programs)
bench: all
.PHONY: bench bench-mpi

if HAVE_MPI
noinst_DATA += $(bench_mpi_programs)
endif
clean-local:
	rm -rf bench/openmpi bench/mpich

EXTRA_DIST += bench/README.md bench/scale_plot bench/footprint bench/progress bench/slices bench/compare \
	bench/comparison/analysis.py bench/comparison/arguments.py bench/comparison/benchmarks.py \
	bench/comparison/hosts.py bench/comparison/machine.py bench/comparison/output.py bench/comparison/results.py \
	bench/comparison/runs.py bench/comparison/stacks.py $(bench_mpi_shared) $(bench_mpi_headers) \
	$(bench_mpi_names:%=bench/mpi/%.c)
