libropewalk_core_la_SOURCES += \
	transports/wire/icrc.h \
	transports/wire/psn.h \
	transports/wire/wire.h
