libropewalk_core_la_SOURCES += \
	transports/ud/ud.h transports/ud/internal.h transports/ud/ud.c transports/ud/socket.c
