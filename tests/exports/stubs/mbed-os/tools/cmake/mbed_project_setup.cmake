if(NOT CMAKE_PROJECT_NAME)
  message(FATAL_ERROR "mbed_project_setup comes after project()")
endif()
set(UPLOAD_METHOD_DEFAULT NONE)
