# What src/topology adds to the build.
libropewalk_core_la_SOURCES += \
	src/topology/count.c \
	src/topology/file.c \
	src/topology/job_key.c \
	src/topology/job_map.c src/topology/job_map.h \
	src/topology/launchers.c \
	src/topology/machine.c src/topology/machine.h \
	src/topology/node_map.c src/topology/node_map.h \
	src/topology/pmix.c \
	src/topology/slurm.c \
	src/topology/source.c src/topology/source.h
