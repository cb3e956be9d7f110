# What src/selection adds to the build.
libropewalk_core_la_SOURCES += \
	src/selection/selection.h
