package io.strimzi.crdgenerator.annotations;

import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;

/** As on Strimzi's classes, whose own jar of annotations is not published. */
@Retention(RetentionPolicy.RUNTIME)
public @interface RequiredInVersions {
    /** Versions of the resource, such as v1beta2 or v1+. */
    String value();
}
