# Targets: wgrad::wgrad, the shared library, and wgrad::static.
get_filename_component(_wgrad_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

if(NOT TARGET wgrad::wgrad)
    add_library(wgrad::wgrad SHARED IMPORTED)
    set_target_properties(wgrad::wgrad PROPERTIES
        IMPORTED_LOCATION "${_wgrad_prefix}/lib/libwgrad.so.@VERSION@"
        IMPORTED_SONAME "libwgrad.so.0"
        INTERFACE_INCLUDE_DIRECTORIES "${_wgrad_prefix}/include")

    add_library(wgrad::static STATIC IMPORTED)
    set_target_properties(wgrad::static PROPERTIES
        IMPORTED_LOCATION "${_wgrad_prefix}/lib/libwgrad.a"
        INTERFACE_INCLUDE_DIRECTORIES "${_wgrad_prefix}/include"
        INTERFACE_LINK_LIBRARIES "@SYSTEM_LIBRARIES@")
endif()
unset(_wgrad_prefix)
