# What src/topology adds to the build.
libropewalk_core_la_SOURCES += \
	src/topology/job_map.h \
	src/topology/machine.h \
	src/topology/node_map.h
