/** The default theme with wider pages: most of them have code blocks and tables. */
import theme from 'vitepress/theme-without-fonts'
import './style.css'

export default theme
