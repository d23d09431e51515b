import "uplot/dist/uPlot.min.css";
import "./style.css";
import { Page } from "./page";

new Page().run();
