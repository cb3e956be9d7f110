libropewalk_core_la_SOURCES += \
	transports/shared_rc/answer.c \
	transports/shared_rc/card.c \
	transports/shared_rc/card.h \
	transports/shared_rc/door.c \
	transports/shared_rc/door.h \
	transports/shared_rc/inbox.c \
	transports/shared_rc/internal.h \
	transports/shared_rc/join.c \
	transports/shared_rc/join.h \
	transports/shared_rc/layout.c \
	transports/shared_rc/layout.h \
	transports/shared_rc/lock.c \
	transports/shared_rc/members.c \
	transports/shared_rc/pieces.c \
	transports/shared_rc/polling.c \
	transports/shared_rc/reach.c \
	transports/shared_rc/shared_rc.h \
	transports/shared_rc/step.c \
	transports/shared_rc/target.c \
	transports/shared_rc/view.c
