# For find_package(ctrace). Targets: ctrace::ctrace for ctrace.h, and ctrace::ctrack for the same under
# the names of CTRACK (ctrack.hpp). Package managers move this file, so it looks for its headers.
set(_ctrace_prefix ${CMAKE_CURRENT_LIST_DIR})
while(NOT EXISTS ${_ctrace_prefix}/include/ctrace.h)
  get_filename_component(_ctrace_parent ${_ctrace_prefix} DIRECTORY)
  if(_ctrace_parent STREQUAL _ctrace_prefix)
    set(ctrace_FOUND FALSE)
    set(ctrace_NOT_FOUND_MESSAGE "no folder above ${CMAKE_CURRENT_LIST_DIR} has include/ctrace.h")
    return()
  endif()
  set(_ctrace_prefix ${_ctrace_parent})
endwhile()
if(NOT TARGET ctrace::ctrace)
  add_library(ctrace::ctrace INTERFACE IMPORTED)
  set_target_properties(ctrace::ctrace PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES ${_ctrace_prefix}/include)
  add_library(ctrace::ctrack INTERFACE IMPORTED)
  set_target_properties(ctrace::ctrack PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES ${_ctrace_prefix}/include/ctrace/ctrack
    INTERFACE_LINK_LIBRARIES ctrace::ctrace)
endif()
unset(_ctrace_prefix)
unset(_ctrace_parent)
