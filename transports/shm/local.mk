# What transports/shm adds to the build.
libropewalk_core_la_SOURCES += transports/shm/pair.h transports/shm/transfer.h
