# What src/engine adds to the build.
libropewalk_core_la_SOURCES += src/engine/engine.h src/engine/match.c src/engine/match.h
