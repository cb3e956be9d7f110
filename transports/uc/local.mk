libropewalk_core_la_SOURCES += \
	transports/uc/uc.h transports/uc/internal.h transports/uc/uc.c transports/uc/responder.c
