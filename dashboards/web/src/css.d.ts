// The builder takes stylesheets as modules; they have no value.
declare module "*.css";
