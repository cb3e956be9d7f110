libropewalk_core_la_SOURCES += \
	transports/rc/ack.c \
	transports/rc/answers.c \
	transports/rc/busy.c \
	transports/rc/early.c \
	transports/rc/internal.h \
	transports/rc/kinds.h \
	transports/rc/loss.c \
	transports/rc/marks.c \
	transports/rc/qp.c \
	transports/rc/rc.h \
	transports/rc/reads.c \
	transports/rc/requester.c \
	transports/rc/responder.c \
	transports/rc/sound.c \
	transports/rc/unordered.c \
	transports/rc/window.c
