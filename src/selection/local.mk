# What src/selection adds to the build.
libropewalk_core_la_SOURCES += \
	src/selection/cost.c src/selection/cost.h \
	src/selection/explain.c \
	src/selection/selection.c src/selection/selection.h
