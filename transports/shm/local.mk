# What transports/shm adds to the build.
libropewalk_core_la_SOURCES += transports/shm/pair.h transports/shm/transfer.h
libropewalk_core_la_SOURCES += transports/shm/transfer.c transports/shm/transfer_state.h \
	transports/shm/transfer_region.c transports/shm/transfer_pull.c transports/shm/transfer_proof.c \
	transports/shm/transfer_reach.c transports/shm/transfer_stage.c transports/shm/transfer_summary.c \
	transports/shm/transfer_border.h transports/shm/transfer_border.c transports/shm/transfer_both.c transports/shm/transfer_help.c transports/shm/transfer_claim.h transports/shm/transfer_area.h \
	transports/shm/transfer_choice.h transports/shm/transfer_choice.c \
	transports/shm/transfer_direct.c transports/shm/transfer_guard.c transports/shm/transfer_least.c
libropewalk_core_la_SOURCES += transports/shm/answer.h transports/shm/answer.c transports/shm/arrival.h transports/shm/arrival.c transports/shm/layout.h transports/shm/channel.h transports/shm/counters.h \
	transports/shm/ring.h transports/shm/ring.c transports/shm/slab.h transports/shm/slab.c transports/shm/fill.h transports/shm/fill.c transports/shm/send.c \
	transports/shm/deliver.h transports/shm/deliver.c transports/shm/port.c transports/shm/attach.c transports/shm/note.h \
	transports/shm/note.c transports/shm/segment.h transports/shm/segment.c transports/shm/evidence.c transports/shm/wake.c
