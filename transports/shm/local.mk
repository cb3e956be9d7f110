# What transports/shm adds to the build.
libropewalk_core_la_SOURCES += transports/shm/pair.h transports/shm/transfer.h
libropewalk_core_la_SOURCES += transports/shm/transfer.c transports/shm/transfer_state.h transports/shm/transfer_iov.c \
	transports/shm/transfer_region.c transports/shm/transfer_pull.c transports/shm/transfer_stage.c \
	transports/shm/transfer_choice.h transports/shm/transfer_choice.c
